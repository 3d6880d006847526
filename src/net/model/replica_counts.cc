// Counts of rows and bytes of a model's tables and memory.
#include "net/model/replica.h"
#include "net/model/table_counts.h"

namespace hctr {

void Replica::add_index_places(Embedding& table, std::map<std::string, int64_t>& counts) const {
  int64_t places = 0;
  for (const std::string& mine : comm_.gather(std::to_string(table.index_places()), 0)) places += std::stoll(mine);
  if (places > 0) counts[kIndexPlaces] = places;
}

std::map<std::string, std::map<std::string, int64_t>> Replica::table_counts() const {
  std::map<std::string, std::map<std::string, int64_t>> counts;
  for (const auto& table : tables_)
    if (table->spec().policy.any()) {
      counts[table->spec().name] = table->counts();
      add_index_places(*table, counts[table->spec().name]);
    }
  for (const auto& table : tables_) {
    const DiskUse on_disk = table->disk_use();
    if (on_disk.written == 0) continue;
    auto& of_table = counts[table->spec().name];
    of_table["rows_on_disk"] = on_disk.rows;
    of_table["bytes_on_disk"] = on_disk.bytes;
    of_table["rows_to_disk"] = on_disk.written;
    of_table["rows_from_disk"] = on_disk.brought;
    of_table["rows_from_disk_ahead"] = on_disk.ahead;
    const DiskRows::Fetched fetched = table->disk_fetched();
    of_table["bytes_from_disk_ahead"] = fetched.ahead;
    of_table["bytes_from_disk_again"] = fetched.again;
    of_table["rows_read_ahead"] = on_disk.read_ahead;
    of_table["rows_moved_on_disk"] = on_disk.moved;
    of_table["rows_of_batches"] = on_disk.needed;
    of_table["disk_wait_ms"] = static_cast<int64_t>(1e3 * on_disk.seconds);
  }
  for (const auto& table : tables_) {
    const HostRows on_host = table->host_rows();
    if (on_host.bytes == 0) continue;
    counts[table->spec().name]["rows_in_host_memory"] = on_host.rows;
    counts[table->spec().name]["bytes_in_host_memory"] = on_host.bytes;
    const DeviceBytes on_gpu = table->device_bytes();
    counts[table->spec().name]["bytes_on_gpu"] = on_gpu.numbers + on_gpu.besides;
    if (on_host.reads == 0) continue;
    counts[table->spec().name]["rows_moved_to_gpu"] = on_host.moved;
    counts[table->spec().name]["reads"] = on_host.reads;
    counts[table->spec().name]["reads_from_gpu"] = on_host.reads_on_device;
  }
  return counts;
}

std::map<std::string, std::map<std::string, int64_t>> Replica::table_rows() const {
  std::map<std::string, std::map<std::string, int64_t>> counts;
  for (const auto& table : tables_) {
    if (table->spec().policy.any()) continue;
    auto& of_table = counts[table->spec().name];
    of_table["rows"] = table->rows();
    add_index_places(*table, of_table);
  }
  return counts;
}

std::vector<std::pair<std::string, int64_t>> Replica::memory_parts() const {
  const auto weights = static_cast<int64_t>(weights_.all_gradients().spec().bytes());
  std::vector<std::pair<std::string, int64_t>> parts = {
      {"dense weights", weights},
      {"gradients of weights", weights},
      {"optimizer states of weights", weights * weights_.optimizer().states()},
      {"activations in training", static_cast<int64_t>(train_.activation_bytes())},
      {"activations in evaluation", static_cast<int64_t>(evaluation_.activation_bytes())}};
  for (const auto& table : tables_) {
    const TableSpec& spec = table->spec();
    const auto of_row =
        static_cast<int64_t>(size_of(spec.storage)) * spec.dim +
        static_cast<int64_t>(size_of(spec.stored_states())) * spec.state_dim() * spec.optimizer.states();
    parts.emplace_back("rows of table " + spec.name, table->rows() * of_row);
  }
  return parts;
}

}  // namespace hctr

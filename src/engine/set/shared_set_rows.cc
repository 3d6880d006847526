// Access to rows of tables on several ranks, between batches.
#include <algorithm>

#include "core/base/current_error.h"
#include "engine/set/shared_set.h"
#include "engine/table/gather_rows.h"

namespace hctr {

int64_t SharedSet::sum_of_ranks(int64_t mine) {
  int64_t all = 0;
  for (const std::string& part : host_.gather(std::to_string(mine), 0)) all += std::stoll(part);
  return std::stoll(host_.broadcast(std::to_string(all), 0));
}

int64_t SharedSet::rows(size_t t) {
  EmbeddingTable* const own = tables_[t]->table();
  return tables_[t]->place().replicated() ? own->rows() : sum_of_ranks(own ? own->rows() : 0);
}

EmbeddingMemory SharedSet::memory(size_t t) {
  EmbeddingMemory sum;
  if (EmbeddingTable* const own = tables_[t]->table()) {
    const HostRows on_host = own->host_rows();
    const DeviceBytes on_device = own->device_bytes();
    sum = {own->rows(), on_host.rows, own->disk_use().rows, on_device.numbers + on_device.besides, on_host.bytes};
  }
  const bool once = tables_[t]->place().replicated();
  for (int64_t* rows : {&sum.rows, &sum.rows_on_host, &sum.rows_on_disk})
    if (!once) *rows = sum_of_ranks(*rows);
  sum.device_bytes = sum_of_ranks(sum.device_bytes);
  sum.host_bytes = sum_of_ranks(sum.host_bytes);
  return sum;
}

std::map<std::string, int64_t> SharedSet::counts(size_t t) {
  std::map<std::string, int64_t> own;
  if (EmbeddingTable* const table = tables_[t]->table()) own = table->counts();
  if (tables_[t]->place().replicated()) return own;
  // The counts have equal names on all ranks that have rows of the table. All other ranks have no counts.
  std::string names;
  for (const auto& [name, count] : own) names += name + "\n";
  for (const std::string& all : host_.gather(names, 0))
    if (names.empty()) names = all;
  names = host_.broadcast(names, 0);
  std::map<std::string, int64_t> sums;
  for (size_t at = 0; at < names.size();) {
    const size_t end = names.find('\n', at);
    const std::string name = names.substr(at, end - at);
    sums[name] = sum_of_ranks(own.contains(name) ? own[name] : 0);
    at = end + 1;
  }
  return sums;
}

void SharedSet::export_rows(size_t t, RowsToExport wanted, const std::function<void(const RowBlock&)>& sink) {
  EmbeddingTable* const own = tables_[t]->table();
  // If the sink throws, first receive all remaining rows, then throw the error on all ranks.
  std::optional<Error> of_sink;
  const std::function<void(const RowBlock&)> pass = [&](const RowBlock& block) {
    if (!of_sink) of_sink = error_of([&] { sink(block); });
  };
  together([&] {
    if (tables_[t]->place().replicated()) {
      if (comm_.rank() == 0) own->export_rows(wanted, pass);
    } else {
      RowGathering gathering(host_, tables_[t]->spec(), pass);
      if (own) own->export_rows(wanted, [&](const RowBlock& block) { gathering.add(block); });
      gathering.finish();
    }
    throw_on_all_ranks(host_, of_sink, kUsingEmbeddings);
  });
}

std::vector<int64_t> SharedSet::removed_keys(size_t t) {
  std::string mine;
  if (EmbeddingTable* const own = tables_[t]->table(); own && (!tables_[t]->place().replicated() || comm_.rank() == 0))
    for (const SlotKey& one : own->removed_keys()) mine.append(reinterpret_cast<const char*>(&one.second), 8);
  std::vector<int64_t> all;
  for (const std::string& text : host_.gather(mine, 0))
    for (size_t at = 0; at < text.size(); at += sizeof(int64_t)) {
      all.push_back(0);
      text.copy(reinterpret_cast<char*>(&all.back()), sizeof(int64_t), at);
    }
  std::sort(all.begin(), all.end());
  return all;
}

void SharedSet::note_model(size_t t) {
  if (EmbeddingTable* const own = tables_[t]->table()) own->note_model();
}

int64_t SharedSet::remove_rows(size_t t, std::span<const int64_t> keys) {
  int64_t gone = 0;
  agreed([&] {
    if (EmbeddingTable* const own = tables_[t]->table()) gone = own->remove_rows(keys);
  });
  return sum_of_ranks(gone);
}

void SharedSet::import_rows(size_t t, const RowBlock& block) {
  EmbeddingTable* const own = tables_[t]->table();
  if (!own) return;
  if (tables_[t]->place().replicated())
    own->import_rows(block);
  else
    import_owned_rows(tables_[t]->place().of_keys(comm_.size()), comm_.rank(), block, *own);
}

}  // namespace hctr

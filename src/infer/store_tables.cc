#include "infer/store_tables.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "core/base/dtype.h"
#include "core/base/expect.h"
#include "engine/spec/slot_vector_columns.h"
#include "engine/table/reader_batch.h"
#include "ops/embedding/embedding_pool.h"
#include "store/bound_version.h"

namespace hctr {
namespace {

/// Reads the distinct rows of a batch from a store, converts them to the model's storage type, and pools them like the
/// model's own table.
class StoreTableReader : public TableReader {
 public:
  StoreTableReader(const TableSpec& spec, size_t table, int64_t samples, int64_t key_capacity,
                   const StoreReading* const& reading)
      : spec_(spec), table_(table), sizes_{samples, key_capacity}, reading_(reading) {
    if (spec.combiner == ops::Combiner::none) columns_ = slot_vector_columns(spec);
  }

  void lookup(Context& ctx, Tensor keys, Tensor offsets, Tensor y) override {
    HCTR_EXPECT(reading_, "table '", spec_.name, "': start a reading of the store before a lookup");
    const ops::KeyBatch batch =
        reader_batch(spec_, sizes_, keys, offsets, {columns_.of_slot.data(), columns_.slots.data()});
    rows_.assign(static_cast<size_t>(spec_.dim), 0.0f);
    row_of_.resize(static_cast<size_t>(batch.size()));
    const auto find = [&](int32_t slot, int64_t begin, int64_t end) {
      if (begin == end) return;
      reading_->get_rows(table_, {batch.keys + begin, static_cast<size_t>(end - begin)}, rows_, row_of_.data() + begin,
                         slot);
    };
    if (spec_.identity_by_slot)
      for (int64_t s = 0; s < spec_.slots; ++s)
        find(static_cast<int32_t>(s), batch.offsets[s * sizes_.samples], batch.offsets[(s + 1) * sizes_.samples]);
    else
      find(0, 0, batch.size());
    ops::pool(ctx, batch, row_of_.data(), stored_rows(), spec_.combiner, y);
  }

 private:
  ops::RowMemory stored_rows() {
    if (spec_.storage == DType::f32) return {rows_.data(), DType::f32};
    stored_.resize(rows_.size() * size_of(spec_.storage));
    dispatch_float(spec_.storage, [&]<class T>() {
      T* const to = reinterpret_cast<T*>(stored_.data());
      for (size_t i = 0; i < rows_.size(); ++i) to[i] = static_cast<T>(rows_[i]);
    });
    return {stored_.data(), spec_.storage};
  }

  const TableSpec& spec_;
  size_t table_;
  ReaderSizes sizes_;
  const StoreReading* const& reading_;
  SlotVectorColumns columns_;  // used only without pooling; if empty, a KeyBatch has null pointers
  std::vector<float> rows_;    // distinct rows of a batch; row 0 means "no row"
  std::vector<std::byte> stored_;
  std::vector<int32_t> row_of_;  // row number of each key
};

}  // namespace

StoreTables::StoreTables(std::shared_ptr<const StoreView> view, const Config& config, const Replica& model)
    : view_(std::move(view)), model_(model) {
  const std::vector<StoreView::Table> there = view_->tables();
  for (size_t e = 0; e < config.embeddings.size(); ++e) {
    const TableSpec& spec = model.table_spec(e);
    const auto fail = [&](const std::string& why) {
      throw Error(Kind::config, cat("table '", spec.name, "' cannot come from the store: ", why));
    };
    if (spec.policy.shares_row())
      fail(
          "keys without their own row share a trained row, which model files do not "
          "contain");
    size_t number = 0;
    try {
      number = view_->table(spec.name);
    } catch (const Error& error) {
      fail(error.what());
    }
    const StoreView::Table& table = there[number];
    if (table.dim != spec.dim)
      fail(cat("the store has rows of ", table.dim, " elements, but the model has rows of ", spec.dim));
    if (table.by_slot != spec.identity_by_slot)
      fail(table.by_slot ? "rows are identified by slot and key in the store, but by key alone in the model"
                         : "rows are identified by key alone in the store, but by slot and key in the model");
    numbers_.push_back(number);
  }
}

void StoreTables::use_cache(Device device) { cache_ = BoundVersion::shared(*view_, device); }

std::vector<uint8_t> StoreTables::have_rows(size_t embedding, std::span<const SlotKey> keys) const {
  constexpr size_t kRowsAtATime = 1024;
  const TableSpec& spec = model_.table_spec(embedding);
  std::map<int32_t, std::vector<size_t>> of_slots;
  for (size_t k = 0; k < keys.size(); ++k) of_slots[spec.identity_by_slot ? keys[k].first : 0].push_back(k);
  const StoreReading reading = read();
  std::vector<uint8_t> have(keys.size());
  for (const auto& of_slot : of_slots) {
    const int32_t slot = of_slot.first;
    const std::vector<size_t>& all = of_slot.second;
    for (size_t first = 0; first < all.size(); first += kRowsAtATime) {
      const std::span<const size_t> some = std::span(all).subspan(first, std::min(kRowsAtATime, all.size() - first));
      std::vector<int64_t> wanted;
      for (const size_t k : some) wanted.push_back(keys[k].second);
      std::vector<float> rows(wanted.size() * static_cast<size_t>(spec.dim));
      std::vector<uint8_t> found(wanted.size());
      const auto look_up = [&](size_t begin, size_t count) {
        reading.get(numbers_[embedding], std::span(wanted).subspan(begin, count),
                    rows.data() + begin * static_cast<size_t>(spec.dim), 0, found.data() + begin, slot);
      };
      try {
        look_up(0, wanted.size());
      } catch (const Error& error) {
        if (error.kind() != Kind::data) throw;
        found.assign(wanted.size(), 0);  // the view throws if some key has no row, so look up each key separately
        for (size_t i = 0; i < wanted.size(); ++i) try {
            look_up(i, 1);
          } catch (const Error& missing) {
            if (missing.kind() != Kind::data) throw;
          }
      }
      for (size_t i = 0; i < found.size(); ++i) have[some[i]] = found[i];
    }
  }
  return have;
}

std::unique_ptr<TableReader> StoreTables::reader(size_t embedding, int64_t samples, int64_t key_capacity,
                                                 const StoreReading* const& reading) const {
  return std::make_unique<StoreTableReader>(model_.table_spec(embedding), numbers_[embedding], samples, key_capacity,
                                            reading);
}

}  // namespace hctr

#include "formats/text/row_major.h"

#include <algorithm>

#include "formats/data/one_hot.h"

namespace hctr {
RowMajor::RowMajor(const RecordShape& shape)
    : shape_(shape), slots_(shape.slots()), limits_matter_(!shape.allows_one_hot()) {}

void RowMajor::start(SampleBlock& block, std::span<const size_t> passed_on) {
  block_ = &block;
  block_->kept.clear();
  passed_on_ = passed_on;
  rows_ = 0;
  one_hot_ = true;
  keys_.clear();
  kept_keys_ = 0;
}

RowMajor::Row RowMajor::next() {
  if (rows_ == capacity_) capacity_ = std::max<int64_t>(1024, 2 * capacity_);
  grow(block_->label, capacity_ * shape_.label_dim);  // called for each row, because the block may have changed
  grow(block_->dense, capacity_ * shape_.dense_dim);
  if (block_->wants_exact) grow(block_->exact, capacity_ * shape_.dense_dim);
  grow(nnz_, capacity_ * slots_);
  keys_.resize(kept_keys_);  // drops the keys of a row that was not kept
  return {block_->label.data() + rows_ * shape_.label_dim, block_->dense.data() + rows_ * shape_.dense_dim,
          block_->wants_exact ? block_->exact.data() + rows_ * shape_.dense_dim : nullptr, nnz_.data() + rows_ * slots_,
          &keys_};
}

std::string RowMajor::keep() {
  const int32_t* nnz = nnz_.data() + rows_ * slots_;
  int32_t differ = 0;
  for (int64_t s = 0; s < slots_; ++s) differ |= nnz[s] ^ 1;
  if (differ != 0 || limits_matter_)
    if (std::string problem = shape_.excess([&](int64_t s) { return nnz[s]; }); !problem.empty()) return problem;
  one_hot_ &= differ == 0;
  kept_keys_ = keys_.size();
  ++rows_;
  return "";
}

void RowMajor::finish() {
  keys_.resize(kept_keys_);
  block_->rows = rows_;
  if (one_hot_) {
    row_keys_.clear();
    for (int64_t r = 0; r < rows_; ++r)
      row_keys_.push_back(reinterpret_cast<const std::byte*>(keys_.data() + r * slots_));
    return place_one_hot<int64_t>(row_keys_, slots_, sizeof(int64_t), nullptr, *block_);
  }
  grow(block_->offsets, slots_ * rows_ + 1);
  grow(block_->keys, static_cast<int64_t>(kept_keys_));
  int32_t at = 0;
  for (int64_t s = 0; s < slots_; ++s)
    for (int64_t r = 0; r < rows_; ++r) {
      block_->offsets[static_cast<size_t>(s * rows_ + r)] = at;
      at += nnz_[static_cast<size_t>(r * slots_ + s)];
    }
  block_->offsets[static_cast<size_t>(slots_ * rows_)] = at;
  const int64_t* from = keys_.data();
  for (int64_t r = 0; r < rows_; ++r)
    for (int64_t s = 0; s < slots_; ++s) {
      const int32_t count = nnz_[static_cast<size_t>(r * slots_ + s)];
      std::copy_n(from, count, block_->keys.data() + block_->offsets[static_cast<size_t>(s * rows_ + r)]);
      from += count;
    }
}

}  // namespace hctr

// Answers the missed keys of a look-up in a DeviceCache: threads read the rows from the source in pieces, and kernels
// write one piece while the threads read the next one.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>
#include <utility>

#include "core/base/expect.h"
#include "ops/cache/row_cache_rules.h"
#include "store/device_cache.h"
#include "store/device_cache_parts.h"
#include "store/unique_keys.h"

namespace hctr {
namespace {

constexpr size_t kMissesOfChunk = 256;  // misses that one thread answers together
constexpr size_t kMissesOfFill = 4096;  // misses that one kernel writes

/// Rounds rows [rows, dim] like the cache does, so that answers do not depend on which keys are cached.
void round_like_cached(ops::CachedType type, int64_t dim, std::span<float> rows) {
  if (type == ops::CachedType::f32) return;
  std::vector<std::byte> stored(static_cast<size_t>(dim * ops::bytes_of(type)));
  for (float* row = rows.data(); row < rows.data() + rows.size(); row += dim) {
    float largest = 0;
    for (int64_t d = 0; d < dim; ++d) largest = std::max(largest, std::abs(row[d]));
    const float scale = ops::cache_scale(type, largest);
    for (int64_t d = 0; d < dim; ++d) ops::store_cached(type, stored.data(), d, row[d], scale);
    for (int64_t d = 0; d < dim; ++d) row[d] = ops::cached_element(type, stored.data(), d, scale);
  }
}

}  // namespace

void DeviceCache::Session::reserve_answers(size_t found_count, size_t value_count, size_t bag_count) {
  grown_host(found, device, found_count * sizeof(ops::CacheFound));
  grown_host(values, device, value_count * sizeof(float));
  grown_host(bags, device, bag_count * sizeof(int64_t));
}

/// Groups misses by part. The kernel lists them in any order.
void DeviceCache::Session::group(std::span<const ops::CacheMiss> listed) {
  grouped = listed;
  first_of_part.assign(parts.size() + 1, 0);
  if (parts.size() == 1) {
    first_of_part.back() = listed.size();
    return;
  }
  for (const ops::CacheMiss& miss : listed) ++first_of_part[static_cast<size_t>(miss.part) + 1];
  for (size_t p = 0; p < parts.size(); ++p) first_of_part[p + 1] += first_of_part[p];
  by_part.resize(listed.size());
  std::vector<size_t> next(first_of_part.begin(), first_of_part.end() - 1);
  for (const ops::CacheMiss& miss : listed) by_part[next[static_cast<size_t>(miss.part)]++] = miss;
  grouped = by_part;
}

/// Writes to `bags` the numbers of the bags that have a grouped miss, in ascending order. Returns how many bags these
/// are.
int64_t DeviceCache::Session::list_bags() const {
  auto* const first = elements_of<int64_t>(*bags);
  int64_t* end = first;
  for (size_t p = 0; p < parts.size(); ++p)
    if (parts[p].offsets)
      for (size_t i = first_of_part[p]; i < first_of_part[p + 1]; ++i)
        if (end == first || end[-1] != grouped[i].item) *end++ = grouped[i].item;
  std::sort(first, end);
  return std::unique(first, end) - first;
}

/// Reads the rows of missed keys from the source, and queues the kernels that write them to the output.
void DeviceCache::answer(Session& session, StreamRef stream, std::span<const ops::CacheMiss> misses,
                         CacheResult& counts) {
  struct Chunk {
    size_t part, begin, end;  // the grouped misses [begin, end), which are all of one part
    int64_t first_value;
    int64_t defaults = 0;
  };
  session.group(misses);
  std::vector<Chunk> chunks;
  int64_t values = 0;
  for (size_t p = 0; p < session.parts.size(); ++p)
    for (size_t begin = session.first_of_part[p], end = 0; begin < session.first_of_part[p + 1]; begin = end) {
      end = std::min(begin + kMissesOfChunk, session.first_of_part[p + 1]);
      chunks.push_back({p, begin, end, values});
      values += static_cast<int64_t>(end - begin) * session.dims[p];
    }
  session.reserve_answers(misses.size(), static_cast<size_t>(values), session.lookup.has_bags ? misses.size() : 0);
  auto* const found = elements_of<ops::CacheFound>(*session.found);
  auto* const rows = elements_of<float>(*session.values);
  const auto answer_chunk = [&](size_t number) {
    thread_local UniqueKeys unique;
    thread_local std::vector<int64_t> keys;
    thread_local std::vector<uint8_t> there;
    Chunk& chunk = chunks[number];
    const ops::CachePart& part = session.parts[chunk.part];
    const int64_t dim = session.dims[chunk.part];
    const std::span<const ops::CacheMiss> some = session.grouped.subspan(chunk.begin, chunk.end - chunk.begin);
    keys.clear();
    for (const ops::CacheMiss& miss : some) keys.push_back(miss.key);
    unique.set(keys);
    there.assign(unique.keys.size(), 0);
    float* const to = rows + chunk.first_value;
    source_.rows(part.space, unique.keys, to, there.data());
    round_like_cached(session.types[chunk.part], dim, {to, unique.keys.size() * static_cast<size_t>(dim)});
    ops::CacheFound* const found_here = found + chunk.begin;
    for (size_t u = 0; u < unique.keys.size(); ++u) {
      const auto at = static_cast<size_t>(unique.places[u]);
      found_here[at] = {some[at].part, some[at].at, there[u] ? chunk.first_value + static_cast<int64_t>(u) * dim : -1};
    }
    for (const auto& [place, first] : unique.duplicates) {
      const auto at = static_cast<size_t>(place);
      found_here[at] = {some[at].part, some[at].at, found_here[first].first};
    }
    for (size_t i = 0; i < some.size(); ++i) chunk.defaults += found_here[i].first < 0;
  };
  Context ctx(runtime_, stream);
  constexpr size_t kChunksOfFill = kMissesOfFill / kMissesOfChunk;
  const auto fill = [&](size_t begin, size_t end) {
    const bool is_last = end == chunks.size();
    ops::cache_fill(ctx, session.lookup,
                    {.found = found,
                     .found_first = static_cast<int64_t>(chunks[begin].begin),
                     .found_count = static_cast<int64_t>(chunks[end - 1].end),
                     .ends = is_last,
                     .values = rows,
                     .bags = elements_of<int64_t>(*session.bags),
                     .bag_count = is_last && session.lookup.has_bags ? session.list_bags() : 0});
  };
  // Only the thread of the look-up starts kernels. It does so between its own chunks, so that no thread waits until all
  // chunks of a kernel are answered.
  std::vector<std::atomic<size_t>> left((chunks.size() + kChunksOfFill - 1) / kChunksOfFill);
  const auto chunks_of = [&](size_t number) {
    return std::pair(number * kChunksOfFill, std::min((number + 1) * kChunksOfFill, chunks.size()));
  };
  for (size_t i = 0; i < left.size(); ++i) left[i] = chunks_of(i).second - chunks_of(i).first;
  size_t filled = 0;
  const auto fill_ready = [&] {
    for (; filled < left.size() && left[filled] == 0; ++filled) fill(chunks_of(filled).first, chunks_of(filled).second);
  };
  const auto caller = std::this_thread::get_id();
  for_chunks(0, chunks.size(), [&](size_t number) {
    answer_chunk(number);
    --left[number / kChunksOfFill];
    if (std::this_thread::get_id() == caller) fill_ready();
  });
  fill_ready();
  session.record(stream);
  for (const Chunk& chunk : chunks) counts.defaults += chunk.defaults;
  consider(session);
}

/// Gives missed keys the default value, and counts their misses for admission.
void DeviceCache::default_misses(Session& session, StreamRef stream, CacheResult& counts) {
  const ops::CacheAnswer said = session.said();
  counts = {said.misses, said.defaults + said.misses};
  if (said.misses == 0) return;
  session.group({elements_of<const ops::CacheMiss>(*session.misses), said.misses});
  session.reserve_answers(said.misses, 0, said.misses);
  auto* const found = elements_of<ops::CacheFound>(*session.found);
  for (size_t i = 0; i < session.grouped.size(); ++i) found[i] = {session.grouped[i].part, session.grouped[i].at, -1};
  Context ctx(runtime_, stream);
  ops::cache_fill(ctx, session.lookup,
                  {.found = found,
                   .found_count = said.misses,
                   .values = nullptr,
                   .bags = elements_of<int64_t>(*session.bags),
                   .bag_count = session.list_bags()});
  session.record(stream);
  consider(session);
}

}  // namespace hctr

// Traces kernels with CUPTI. The library is loaded at run time, so programs also start without it. When a capture
// creates a graph node, the node gets a mark. An executable graph has clones of these nodes, and trace records name the
// clones, so each clone gets the mark of its original.
#include "core/device/cupti_trace.h"

#include <cuda_runtime.h>
#include <cupti.h>
#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "core/base/expect.h"

namespace hctr::cuda {
namespace {

constexpr size_t kRecordBytes = size_t{4} << 20;  // buffer size: about twenty thousand records

struct CuptiFunctions {
  decltype(&::cuptiSubscribe) subscribe;
  decltype(&::cuptiUnsubscribe) unsubscribe;
  decltype(&::cuptiEnableCallback) enable_callback;
  decltype(&::cuptiGetGraphNodeId) id_of_node;
  decltype(&::cuptiGetTimestamp) timestamp;
  decltype(&::cuptiActivityRegisterCallbacks) register_buffers;
  decltype(&::cuptiActivityEnable) enable;
  decltype(&::cuptiActivityDisable) disable;
  decltype(&::cuptiActivityFlushAll) flush_all;
  decltype(&::cuptiActivityGetNextRecord) next_record;
  decltype(&::cuptiGetResultString) text_of;
};

/// Searches next to the CUDA runtime, where toolkits and wheels install CUPTI, then in the system's search path.
void* find_cupti(std::string& reason) {
  const std::string name = cat("libcupti.so.", CUDART_VERSION / 1000);
  std::vector<std::string> files;
  Dl_info runtime{};
  if (::dladdr(reinterpret_cast<void*>(&cudaGetDevice), &runtime) != 0 && runtime.dli_fname) {
    std::error_code ignored;
    const std::filesystem::path folder = std::filesystem::weakly_canonical(runtime.dli_fname, ignored).parent_path();
    for (const char* beside : {".", "../extras/CUPTI/lib64", "../../../extras/CUPTI/lib64", "../../cuda_cupti/lib"})
      files.push_back((folder / beside / name).string());
  }
  for (const char* folder : {"/usr/local/cuda/extras/CUPTI/lib64", "/usr/local/cuda/lib64"})
    files.push_back((std::filesystem::path(folder) / name).string());
  files.push_back(name);  // dlopen() searches LD_LIBRARY_PATH for a name without a folder
  for (const std::string& file : files)
    if (void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  reason = cat(name, " was not found next to the CUDA runtime (", runtime.dli_fname ? runtime.dli_fname : "",
               "), in /usr/local/cuda or in LD_LIBRARY_PATH; the library is part of the CUDA toolkit (cuda-cupti)");
  return nullptr;
}

/// Loads CUPTI. Returns nullopt and sets `reason` if loading fails.
std::optional<CuptiFunctions> load_cupti(std::string& reason) {
  void* const library = find_cupti(reason);
  if (!library) return std::nullopt;
  CuptiFunctions functions{};
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    if (!function) reason = cat("libcupti.so has no ", name);
  };
  find(functions.subscribe, "cuptiSubscribe");
  find(functions.unsubscribe, "cuptiUnsubscribe");
  find(functions.enable_callback, "cuptiEnableCallback");
  find(functions.id_of_node, "cuptiGetGraphNodeId");
  find(functions.timestamp, "cuptiGetTimestamp");
  find(functions.register_buffers, "cuptiActivityRegisterCallbacks");
  find(functions.enable, "cuptiActivityEnable");
  find(functions.disable, "cuptiActivityDisable");
  find(functions.flush_all, "cuptiActivityFlushAll");
  find(functions.next_record, "cuptiActivityGetNextRecord");
  find(functions.text_of, "cuptiGetResultString");
  return reason.empty() ? std::optional(functions) : std::nullopt;
}

/// CUPTI's functions, loaded once and never unloaded. nullopt: `why_not` has the reason.
struct LoadedCupti {
  LoadedCupti() : functions(load_cupti(why_not)) {}
  std::string why_not;
  std::optional<CuptiFunctions> functions;
};
const LoadedCupti& loaded_cupti() {
  static const LoadedCupti loaded;
  return loaded;
}

constexpr CUpti_ActivityKind kTracedKinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                                               CUPTI_ACTIVITY_KIND_MEMSET};
constexpr std::pair<CUpti_CallbackDomain, uint32_t> kTracedCalls[] = {
    {CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED},
    {CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED},
    // The calls by which this program and its libraries queue work.
    {CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020},
    {CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020},
    {CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000},
    {CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060},
    {CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel},
    {CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx},
};

struct ActivityRecord {
  uint64_t node;  // 0: queued outside a graph
  uint32_t launch;
  uint64_t begin_ns, end_ns;
};

/// Records of all buffers. They are process-wide, because CUPTI passes no user data to its buffer callbacks. CUPTI
/// allows one subscriber per process, so all records belong to the same trace.
struct ActivityRecords {
  std::mutex guard;
  const CuptiFunctions* cupti = nullptr;
  std::vector<ActivityRecord> all;
};
ActivityRecords& activity_records() {
  static ActivityRecords records;
  return records;
}

void CUPTIAPI give_buffer(uint8_t** buffer, size_t* bytes, size_t* most_records) {
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(64, kRecordBytes));
  *bytes = *buffer ? kRecordBytes : 0;  // 0 makes CUPTI drop records
  *most_records = 0;
}

/// Later versions of CUPTI may return longer records, but the fields read here keep their offsets.
template <class Record>
ActivityRecord read_record(const CUpti_Activity* any) {
  const auto* const record = reinterpret_cast<const Record*>(any);
  return {record->graphNodeId, record->correlationId, record->start, record->end};
}

void CUPTIAPI take_buffer(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid_bytes) {
  ActivityRecords& into = activity_records();
  const std::lock_guard lock(into.guard);
  CUpti_Activity* record = nullptr;
  while (into.cupti && into.cupti->next_record(buffer, valid_bytes, &record) == CUPTI_SUCCESS) {
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL || record->kind == CUPTI_ACTIVITY_KIND_KERNEL)
      into.all.push_back(read_record<CUpti_ActivityKernel9>(record));
    else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY)
      into.all.push_back(read_record<CUpti_ActivityMemcpy5>(record));
    else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET)
      into.all.push_back(read_record<CUpti_ActivityMemset4>(record));
  }
  std::free(buffer);
}

class CuptiTrace : public KernelTrace {
 public:
  explicit CuptiTrace(const CuptiFunctions& cupti) : cupti_(cupti) {}
  CuptiTrace(const CuptiTrace&) = delete;
  CuptiTrace& operator=(const CuptiTrace&) = delete;
  ~CuptiTrace() override {
    if (!subscriber_) return;  // begin() failed, because another tool traces the process
    current = nullptr;
    for (const CUpti_ActivityKind kind : kTracedKinds) cupti_.disable(kind);
    cupti_.flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    cupti_.unsubscribe(subscriber_);
  }

  /// Starts tracing. Returns "" or the reason of the failure.
  std::string begin() {
    std::string reason;
    const auto call = [&](CUptiResult result, const char* what) {
      const char* text = "";
      if (result == CUPTI_SUCCESS || !reason.empty()) return;
      cupti_.text_of(result, &text);
      reason =
          cat("CUPTI: ", text, " (", static_cast<int>(result), ") in ", what,
              result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED ? "; another tool traces this process" : "");
    };
    call(cupti_.subscribe(&subscriber_, &CuptiTrace::on_call, this), "cuptiSubscribe");
    if (!reason.empty()) {
      subscriber_ = nullptr;
      return reason;
    }
    current = this;
    cupti_.timestamp(&first_);
    {
      ActivityRecords& records = activity_records();
      const std::lock_guard lock(records.guard);
      records.cupti = &cupti_;
      records.all.clear();
    }
    for (const auto& [domain, id] : kTracedCalls)
      call(cupti_.enable_callback(1, subscriber_, domain, id), "cuptiEnableCallback");
    call(cupti_.register_buffers(give_buffer, take_buffer), "cuptiActivityRegisterCallbacks");
    for (const CUpti_ActivityKind kind : kTracedKinds) call(cupti_.enable(kind), "cuptiActivityEnable");
    return reason;
  }

  void set_mark(std::optional<PartMark> mark) override { mark_ = mark; }
  void move_mark_of(CUgraphNode from, CUgraphNode to) { on_node(to, find(nodes_, id_of(from))); }
  double now() const override {
    uint64_t nanoseconds = 0;
    cupti_.timestamp(&nanoseconds);
    return seconds_at(nanoseconds);
  }
  std::vector<TracedWork> take() override {
    cupti_.flush_all(0);
    ActivityRecords& records = activity_records();
    const std::lock_guard lock(records.guard);
    std::vector<TracedWork> out;
    for (const ActivityRecord& record : std::exchange(records.all, {})) {
      if (record.end_ns == 0) continue;  // CUPTI has no timestamps for this record
      out.push_back({record.node != 0 ? find(nodes_, record.node) : find(calls_, record.launch), record.launch,
                     seconds_at(record.begin_ns), seconds_at(record.end_ns)});
    }
    calls_.clear();
    return out;
  }

  /// The trace with which this thread records graphs.
  static inline thread_local CuptiTrace* current = nullptr;

 private:
  using Marks = std::map<uint64_t, PartMark>;
  /// Seconds since begin(). Subtracts integers first: a double represents the nanoseconds of a few days exactly, but
  /// not those of decades.
  double seconds_at(uint64_t nanoseconds) const {
    return 1e-9 * static_cast<double>(static_cast<int64_t>(nanoseconds - first_));
  }
  static std::optional<PartMark> find(const Marks& marks, uint64_t id) {
    const auto at = marks.find(id);
    return at == marks.end() ? std::nullopt : std::optional(at->second);
  }
  static void CUPTIAPI on_call(void* self, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data) {
    auto* const trace = static_cast<CuptiTrace*>(self);
    if (std::this_thread::get_id() != trace->thread_) return;
    if (domain != CUPTI_CB_DOMAIN_RESOURCE) return trace->on_queued(*static_cast<const CUpti_CallbackData*>(data));
    const auto& graph =
        *static_cast<const CUpti_GraphData*>(static_cast<const CUpti_ResourceData*>(data)->resourceDescriptor);
    if (id == CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED)
      trace->on_node(graph.node, trace->mark_);
    else
      trace->on_node(graph.node, find(trace->nodes_, trace->id_of(graph.originalNode)));
  }
  uint64_t id_of(CUgraphNode node) const {
    uint64_t id = 0;
    return node && cupti_.id_of_node(node, &id) == CUPTI_SUCCESS ? id : 0;
  }
  void on_node(CUgraphNode node, std::optional<PartMark> mark) {
    if (const uint64_t id = mark ? id_of(node) : 0) nodes_.insert_or_assign(id, *mark);
  }
  void on_queued(const CUpti_CallbackData& call) {
    if (mark_ && call.callbackSite == CUPTI_API_ENTER) calls_.insert_or_assign(call.correlationId, *mark_);
  }

  const CuptiFunctions& cupti_;
  const std::thread::id thread_ = std::this_thread::get_id();
  CUpti_SubscriberHandle subscriber_ = nullptr;
  uint64_t first_ = 0;  // CUPTI's time at begin()
  std::optional<PartMark> mark_;
  Marks nodes_;  // [graph node id]: the node's mark; includes the nodes of executable graphs
  Marks calls_;  // [correlation id]: the mark of work that was queued outside graphs
};

}  // namespace

std::unique_ptr<KernelTrace> start_cupti_trace(std::string& reason) {
  const LoadedCupti& cupti = loaded_cupti();
  reason = cupti.why_not;
  if (!cupti.functions) return nullptr;
  auto trace = std::make_unique<CuptiTrace>(*cupti.functions);
  reason = trace->begin();
  if (!reason.empty()) return nullptr;
  return trace;
}

void move_cupti_mark(void* from, void* to) {
  if (CuptiTrace::current)
    CuptiTrace::current->move_mark_of(static_cast<CUgraphNode>(from), static_cast<CUgraphNode>(to));
}

}  // namespace hctr::cuda

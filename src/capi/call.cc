#include "capi/call.h"

#include <new>

#include "core/base/build_info.h"
#include "core/base/expect.h"

namespace hctr::capi {
namespace {

thread_local std::string last_message;

hctr_status status_of(Kind kind) { return exit_code(kind); }

}  // namespace

void note_error(const char* message) noexcept {
  try {
    last_message = message;
  } catch (...) {  // there is no memory for the message
    last_message.clear();
  }
}

hctr_status current_status() noexcept {
  try {
    throw;
  } catch (const Error& error) {
    note_error(error.what());
    return status_of(error.kind());
  } catch (const std::bad_alloc&) {
    note_error("out of memory: the system refused an allocation");
    return HCTR_DEVICE;
  } catch (const std::exception& error) {
    note_error(error.what());
    return HCTR_BUG;
  } catch (...) {
    note_error("an exception of unknown type");
    return HCTR_BUG;
  }
}

LogSink log_sink(hctr_log log, void* user) {
  if (!log) return {};
  return [log, user](Level level, std::string_view line) {
    log(user, level == Level::info ? 0 : 1, std::string(line).c_str());
  };
}

void set_surroundings(Surroundings& surroundings, hctr_getenv get, hctr_setenv set) {
  if (get)
    surroundings.environment = [get](const char* name) {
      const char* value = get(name);
      return value ? std::optional<std::string>(value) : std::nullopt;
    };
  if (set)
    surroundings.set_environment = [set](const char* name, const char* value) { set(name, value ? value : "", 1); };
}

void expect_given(const void* pointer, const char* what) {
  if (!pointer) throw Error(Kind::usage, cat(what, " is NULL"));
}

void expect_going_on(int said) {
  if (said != 0) throw Error(Kind::interrupted, "a callback stopped the call by returning a nonzero value");
}

void check_struct_size(const void* given, size_t size, size_t known, const char* what) {
  if (size < sizeof(size_t))
    throw Error(Kind::usage, cat(what, ": its size is ", size, "; set it to sizeof the struct"));
  const auto* bytes = static_cast<const unsigned char*>(given);
  for (size_t i = known; i < size; ++i)
    if (bytes[i] != 0)
      throw Error(Kind::usage, cat(what, " comes from a newer header (", size, " bytes; this library knows ", known,
                                   ") and sets a field that this library does not know"));
}

}  // namespace hctr::capi

const char* hctr_version(void) { return hctr::version().data(); }
const char* hctr_error_message(void) { return hctr::capi::last_message.c_str(); }

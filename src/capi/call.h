// Wraps a C interface call: an exception becomes a status and the thread's error message.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>

#include "core/base/expect.h"
#include "hctr/huge_ctr.h"
#include "hctr/solver.h"
#include "hctr/surroundings.h"

namespace hctr::capi {

/// Stores a message for hctr_error_message() of this thread.
void note_error(const char* message) noexcept;
/// Returns the status of the exception being handled, and stores its message.
hctr_status current_status() noexcept;

/// Runs body. Returns HCTR_OK, or the status of the exception that body has thrown.
template <class Body>
hctr_status call(const Body& body) noexcept {
  try {
    body();
    return HCTR_OK;
  } catch (...) {
    return current_status();
  }
}

/// A sink that passes log lines to a caller's callback; null if there is no callback.
LogSink log_sink(hctr_log log, void* user);
/// Sets the surroundings from a caller's callbacks; null callbacks keep the defaults of Surroundings.
void set_surroundings(Surroundings&, hctr_getenv, hctr_setenv);

/// Copies the options that trainers and commands on saved models share. `what`: the name of the struct. Errors:
/// Error(usage).
template <class From, class To>
void set_job(const From& from, const char* what, To& to) {
  if (from.change_count > 0 && !from.changes) throw Error(Kind::usage, cat(what, ": changes is NULL"));
  for (size_t i = 0; i < from.change_count; ++i) to.changes.emplace_back(from.changes[i]);
  if (from.device < HCTR_AUTOMATIC || from.device > HCTR_CUDA)
    throw Error(Kind::usage, cat(what,
                                 ": expected HCTR_AUTOMATIC, HCTR_CPU or HCTR_CUDA as device, "
                                 "found ",
                                 from.device));
  to.device = static_cast<DeviceChoice>(from.device);
  if (from.threads != 0) to.threads = from.threads;
  to.allow_unmatched = from.allow_unmatched != 0;
  set_surroundings(to.surroundings, from.getenv, from.setenv);
  to.surroundings.log = log_sink(from.log, from.log_user);
}

/// Throws Error(usage) if a pointer is null. `what`: text for the message, such as "hctr_model_score(): the model".
void expect_given(const void* pointer, const char* what);

/// Throws Error(interrupted) if a callback has returned nonzero.
void expect_going_on(int said);

/// Checks the size of a caller's struct. Errors: Error(usage) if the size is 0, or if the struct sets fields that this
/// library does not know.
void check_struct_size(const void* given, size_t size, size_t known, const char* what);

/// Copies a caller's struct, which may be of an older or newer header version: missing fields become 0, and unknown
/// fields must be 0. Errors: Error(usage).
template <class T>
T read_struct(const T* given, const char* what) {
  expect_given(given, what);
  T out;
  std::memset(static_cast<void*>(&out), 0, sizeof out);
  size_t size = 0;
  std::memcpy(&size, given, sizeof size);
  check_struct_size(given, size, sizeof out, what);
  std::memcpy(static_cast<void*>(&out), given, std::min(size, sizeof out));
  return out;
}
/// Copies fields to a caller's struct, up to the size that the struct states. Errors: Error(usage).
template <class T>
void write_struct(const T& from, T* to, const char* what) {
  expect_given(to, what);
  size_t size = 0;
  std::memcpy(&size, to, sizeof size);
  check_struct_size(to, size, size, what);
  size = std::min(size, sizeof from);
  std::memcpy(static_cast<void*>(to), &from, size);
  std::memcpy(static_cast<void*>(to), &size, sizeof size);
}
/// Element i of a caller's array of structs. The first struct states the size of each struct.
template <class T>
T read_struct(const T* first, size_t i, const char* what) {
  expect_given(first, what);
  size_t size = 0;
  std::memcpy(&size, first, sizeof size);
  return read_struct(reinterpret_cast<const T*>(reinterpret_cast<const std::byte*>(first) + i * size), what);
}

}  // namespace hctr::capi

// Structs of Arrow's C data interface: https://arrow.apache.org/docs/format/CDataInterface.html
#pragma once

#include <cstdint>

struct ArrowSchema {
  const char *format, *name, *metadata;
  int64_t flags;
  int64_t n_children;
  ArrowSchema **children, *dictionary;
  void (*release)(ArrowSchema*);
  void* private_data;
};

struct ArrowArray {
  int64_t length, null_count, offset, n_buffers, n_children;
  const void** buffers;
  ArrowArray **children, *dictionary;
  void (*release)(ArrowArray*);
  void* private_data;
};

struct ArrowArrayStream {
  int (*get_schema)(ArrowArrayStream*, ArrowSchema* out);
  int (*get_next)(ArrowArrayStream*, ArrowArray* out);
  const char* (*get_last_error)(ArrowArrayStream*);
  void (*release)(ArrowArrayStream*);
  void* private_data;
};

/* Symbol visibility of the shared library. */
#ifndef HCTR_EXPORT_H
#define HCTR_EXPORT_H

#if defined(__GNUC__)
#define HCTR_API __attribute__((visibility("default")))
#define HCTR_HIDDEN __attribute__((visibility("hidden")))
#else
#define HCTR_API
#define HCTR_HIDDEN
#endif

#endif

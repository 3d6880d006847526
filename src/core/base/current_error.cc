#include "core/base/current_error.h"

#include <filesystem>
#include <new>
#include <system_error>

namespace hctr {

Error current_error() {
  try {
    throw;
  } catch (const Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return Error(Kind::device, std::string(kOutOfHostMemory));
  } catch (const std::filesystem::filesystem_error& error) {
    return Error(Kind::io, cat("cannot use '", error.path1().string(), "': ", error.code().message()));
  } catch (const std::system_error& error) {
    return Error(
        Kind::device,
        cat("the system could not create a thread or a lock: ", error.code().message(),
            "; `ulimit -u` and `ulimit -v` limit the number of threads; --threads and num_workers set how many threads "
            "the program starts"));
  } catch (const std::exception& error) {
    return Error(Kind::bug, error.what());
  } catch (...) {
    return Error(Kind::bug, "an exception of unknown type");
  }
}

}  // namespace hctr

#include "support/temporary_folder.h"

#include <stdlib.h>

#include "core/base/expect.h"

namespace hctr::test {

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "hctr_test_XXXXXX").string();
  if (!::mkdtemp(name.data())) throw Error(Kind::io, "cannot create a folder for a test in " + name);
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace hctr::test

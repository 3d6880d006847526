#include "data/text_work.h"

namespace hctr {

int64_t count_rows(const std::vector<std::string>& files, const std::optional<std::string>& header) {
  TextSource source(files, header);
  Progress progress("counting rows", "bytes", source.bytes());
  TextBlock block;
  while (source.next(block)) progress.at(block.bytes_done);
  progress.finish();
  return source.rows();
}

}  // namespace hctr

// The report of --init about a table: a line for each column and file, the decision and why.
#pragma once

#include <string>
#include <vector>

#include "prepare/init/init_config.h"
#include "prepare/init/table_pass.h"

namespace hctr {

/// `plan`: decided from `pass`.
std::vector<std::string> init_report(const InitPlan& plan, const TablePass& pass, const InitOptions&);

}  // namespace hctr

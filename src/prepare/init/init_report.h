// The report of --init: a line for each column and file, with the decision and the reason.
#pragma once

#include <string>
#include <vector>

#include "prepare/init/init_config.h"
#include "prepare/init/table_pass.h"

namespace hctr {

/// `plan`: the decisions, made from `pass`.
std::vector<std::string> init_report(const InitPlan& plan, const TablePass& pass, const InitOptions&);

}  // namespace hctr

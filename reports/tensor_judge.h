// The rules of DESIGN 6 for one tensor of a cell.
#pragma once
#include "core/case_id.h"
#include "core/profile.h"
#include "reports/policy.h"
#include "reports/result.h"

namespace numgate {

// Adds the tensor's result and the reasons that follow from it to the cell, whose budget is set.
void judge_tensor(const Case& c, const TensorProfile& tensor, const Policy& policy,
                  CellResult& cell);

}  // namespace numgate

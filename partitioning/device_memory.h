// How much device memory a case takes, and how it is cut where there is less.
#pragma once
#include <cstddef>
#include <cstdint>

#include "core/case_id.h"
#include "kernels/backend.h"

namespace numgate {

// Bytes of device memory at the case's peak: inputs, outputs and, for the recurrence, the operands
// of the chunks that are in memory together (under cp those of every rank, since all ranks share
// the device) and what the ranks exchange. Guard zones are left out.
std::size_t device_bytes(const Case& c);

// Into how many equal groups of heads the case must be cut to fit into the memory that the backend
// has: heads are independent, so a cut changes no bit. Raises UsageError naming the case where one
// head alone does not fit.
std::int64_t head_groups(const Case& c, const kernels::Backend& backend);

}  // namespace numgate

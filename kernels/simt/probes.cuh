// Launchers of the probes, one set a backend.
#pragma once
#include "kernels/simt/function_probe.h"
#include "kernels/simt/simt.h"
#include "kernels/simt/tensor_core_probe.h"

namespace numgate::kernels::NUMGATE_BACKEND {

void launch_probe(const TensorCoreProbe&, simt::Stream);
void launch_probe(const FunctionProbe&, simt::Stream);

}  // namespace numgate::kernels::NUMGATE_BACKEND

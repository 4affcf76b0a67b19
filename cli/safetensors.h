// The safetensors file format: eight bytes of header length, a JSON header, raw data.
#pragma once
#include <filesystem>

#include "core/tensor.h"

namespace numgate {

// Raises UsageError for an unwritable path.
void write_safetensors(const std::filesystem::path& path, const TensorMap& tensors);

// Reads the BF16, F32 and F64 tensors of a file. Raises UsageError that names the file and what is
// wrong with it.
TensorMap read_safetensors(const std::filesystem::path& path);

}  // namespace numgate

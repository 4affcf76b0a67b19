#include "cli/safetensors.h"

#include <nlohmann/json.hpp>

#include "core/errors.h"
#include "reports/files.h"

namespace numgate {

void write_safetensors(const std::filesystem::path& path, const TensorMap& tensors) {
  nlohmann::ordered_json header;
  std::size_t offset = 0;
  for (const auto& [tensor, t] : tensors) {
    header[tensor] = {{"dtype", name(t.dtype)},
                      {"shape", t.shape},
                      {"data_offsets", {offset, offset + t.bytes.size()}}};
    offset += t.bytes.size();
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = text.size();
  std::string file(reinterpret_cast<const char*>(&length), sizeof length);
  file += text;
  for (const auto& [tensor, t] : tensors)
    file.append(reinterpret_cast<const char*>(t.bytes.data()), t.bytes.size());
  write_file_atomically(path, file);
}

TensorMap read_safetensors(const std::filesystem::path& path) {
  const std::string file = read_file(path);
  const auto wrong = [&](const std::string& why) {
    return UsageError("tensors", path.string(), why);
  };
  std::uint64_t length = 0;
  if (file.size() < sizeof length) throw wrong("is too short for a safetensors header");
  std::memcpy(&length, file.data(), sizeof length);
  if (length > file.size() - sizeof length) throw wrong("is cut off inside its header");
  const char* const data = file.data() + sizeof length + length;
  const std::uint64_t data_size = file.size() - sizeof length - length;
  TensorMap tensors;
  try {
    const auto header = nlohmann::json::parse(file.data() + sizeof length, data);
    for (const auto& [tensor, entry] : header.items()) {
      if (tensor == "__metadata__") continue;
      const auto dtype = entry.at("dtype").get<std::string>();
      Dtype type;
      if (dtype == "BF16")
        type = Dtype::bf16;
      else if (dtype == "F32")
        type = Dtype::f32;
      else if (dtype == "F64")
        type = Dtype::f64;
      else
        throw wrong("tensor " + tensor + " has type " + dtype + ", not BF16, F32 or F64");
      const auto shape = entry.at("shape").get<std::vector<std::int64_t>>();
      const auto begin = entry.at("data_offsets").at(0).get<std::uint64_t>();
      const auto end = entry.at("data_offsets").at(1).get<std::uint64_t>();
      std::uint64_t bytes = size_of(type);
      for (auto d : shape) {
        if (d < 0 || (d > 0 && bytes > data_size / static_cast<std::uint64_t>(d)))
          throw wrong("tensor " + tensor + " does not fit its shape");
        bytes *= static_cast<std::uint64_t>(d);
      }
      if (begin > end || end > data_size || end - begin != bytes)
        throw wrong("tensor " + tensor + " does not fit its shape");
      Tensor t(type, shape);
      std::memcpy(t.bytes.data(), data + begin, bytes);
      tensors.emplace(tensor, std::move(t));
    }
  } catch (const nlohmann::json::exception& e) {
    throw wrong(std::string("has a malformed header: ") + e.what());
  }
  return tensors;
}

}  // namespace numgate

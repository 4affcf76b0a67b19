// Where an oracle of the KDA recurrence runs.
#pragma once
#include <cstdint>

namespace numgate {

enum class OracleDevice : std::uint8_t { cpu, cuda };

}  // namespace numgate

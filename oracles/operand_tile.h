// What the recurrence reads of one head at a few tokens, in double-double.
#pragma once
#include <cstdint>
#include <vector>

#include "oracles/certificate.h"
#include "oracles/scalars/double_double.h"

namespace numgate {

struct OperandSource;

// Operands of one head at a few tokens, in double-double, with the norms that the certificate
// needs.
struct OperandTile {
  std::int64_t K = 0;
  std::vector<DD> alpha, khat, qhat;  // [token, K]
  std::vector<DD> beta;               // [token]
  std::vector<TokenNorms> norms;      // [token]; v is left at 0

  OperandTile(std::int64_t K, std::int64_t tokens);
  // Fills tokens [at, at + count), count <= kLanes, from token t of the source.
  void fill(const OperandSource& source, std::int64_t head, std::int64_t t, std::int64_t at,
            int count);
};

}  // namespace numgate

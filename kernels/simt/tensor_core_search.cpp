#include "kernels/simt/tensor_core_search.h"

#include <algorithm>
#include <limits>

#include "kernels/simt/tensor_core_inputs.h"

namespace numgate::tensor_core {
namespace {

constexpr int kNoFloor = -100000;

// A parameter in words: "<before><device's value><after>, the model <its value>".
struct Parameter {
  int (*of)(const Rules&);
  std::string (*show)(int);
  const char *before, *after;
};

const Parameter kParameters[] = {
    {[](const Rules& r) { return r.fraction_bits; }, std::to_string, "keeps ", " fraction bits"},
    {[](const Rules& r) { return r.products; }, std::to_string, "adds ", " products a step"},
    {[](const Rules& r) { return int{r.order == Rules::Order::pairs_first}; },
     [](int pairs) -> std::string { return pairs ? "k % 4 < 2 first" : "products in sequence"; },
     "takes ", ""},
    {[](const Rules& r) { return int{r.addend == Rules::Addend::last}; },
     [](int last) -> std::string {
       return last ? "last, by an fp32 addition" : "with the first products";
     },
     "adds C ", ""},
    {[](const Rules& r) { return int{r.cut == Rules::Cut::floor}; },
     [](int floor) -> std::string { return floor ? "toward minus infinity" : "toward zero"; },
     "cuts terms ", ""},
    {[](const Rules& r) { return int{r.rounding == Rules::Rounding::nearest_even}; },
     [](int nearest) -> std::string { return nearest ? "to nearest even" : "toward zero"; },
     "rounds sums ", ""},
    {[](const Rules& r) { return r.stored_bits; }, std::to_string, "stores ", " fraction bits"},
    {[](const Rules& r) { return r.exponent_floor; },
     [](int e) { return e == kNoFloor ? "nowhere" : "at 2^" + std::to_string(e); },
     "ends its exponents ", ""},
    {[](const Rules& r) { return int{r.reads_as_fp16}; },
     [](int as_fp16) -> std::string { return as_fp16 ? "fp16" : "they are"; }, "reads operands as ",
     ""},
};

std::int64_t distance(const Rules& a, const Rules& b) {
  return std::count_if(std::begin(kParameters), std::end(kParameters),
                       [&](const Parameter& p) { return p.of(a) != p.of(b); });
}

// Everything that published generations do, and their neighbours, those closest to the model first.
std::vector<Rules> candidates(Type type, const Rules& model) {
  const int fp8 = depth(type) == 32, e4m3 = type == Type::e4m3;
  std::vector<Rules> all;
  for (int kept = 10; kept <= 36; ++kept)
    for (int products = 2; products <= depth(type); products *= 2)
      for (int order = 0; order <= (fp8 && products < depth(type)); ++order)
        for (int last = 0; last < 2; ++last)
          for (int floor = 0; floor < 2; ++floor)
            for (int nearest = 0; nearest < 2; ++nearest)
              for (int stored : {23, kept})
                for (int least : {-133, -132, -131, -126, kNoFloor})
                  for (int as_fp16 = 0; as_fp16 <= e4m3; ++as_fp16) {
                    if (stored == kept && kept >= 23) continue;
                    all.push_back({kept, products, static_cast<Rules::Order>(order),
                                   static_cast<Rules::Addend>(last), static_cast<Rules::Cut>(floor),
                                   static_cast<Rules::Rounding>(nearest), stored, least,
                                   e4m3 ? as_fp16 != 0 : model.reads_as_fp16});
                  }
  std::stable_sort(all.begin(), all.end(), [&](const Rules& a, const Rules& b) {
    return distance(a, model) < distance(b, model);
  });
  return all;
}

struct Output {
  int tile, row, column;
};

bool agrees(Type type, const Rules& rules, std::span<const Tile> device, const Output& at) {
  const Tile& tile = device[static_cast<std::size_t>(at.tile)];
  return output(type, rules, tile, at.row, at.column) == tile.d[at.column][at.row];
}

// Up to `per_class` outputs of each class that agree with `rules` or do not, the classes in turn so
// that wrong rules are found out early.
std::vector<Output> sample(Type type, const Rules& rules, std::span<const Tile> device, bool agree,
                           std::size_t per_class) {
  std::vector<Output> of[kInputClasses], all;
  for (int tile = 0; tile < static_cast<int>(device.size()); ++tile) {
    auto& taken = of[static_cast<int>(input_class(tile))];
    for (int row = 0; row < kRows && taken.size() < per_class; ++row)
      for (int column = 0; column < kColumns && taken.size() < per_class; ++column)
        if (agrees(type, rules, device, {tile, row, column}) == agree)
          taken.push_back({tile, row, column});
  }
  for (std::size_t i = 0; i < per_class; ++i)
    for (const auto& taken : of)
      if (i < taken.size()) all.push_back(taken[i]);
  return all;
}

std::int64_t count_mismatches(Type type, const Rules& rules, std::span<const Tile> device) {
  std::int64_t wrong = 0;
#pragma omp parallel for reduction(+ : wrong)
  for (int tile = 0; tile < static_cast<int>(device.size()); ++tile)
    for (int row = 0; row < kRows; ++row)
      for (int column = 0; column < kColumns; ++column)
        wrong += !agrees(type, rules, device, {tile, row, column});
  return wrong;
}

}  // namespace

Explanation explain(Type type, const Rules& model, std::span<const Tile> device) {
  constexpr std::size_t kPerClass = 64;
  std::vector<Output> outputs = sample(type, model, device, false, kPerClass);
  const std::vector<Output> agreeing = sample(type, model, device, true, kPerClass);
  outputs.insert(outputs.end(), agreeing.begin(), agreeing.end());
  Rules best = model;
  std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
  for (const Rules& rules : candidates(type, model)) {
    std::int64_t wrong = 0;
    for (const Output& at : outputs) {
      wrong += !agrees(type, rules, device, at);
      if (wrong >= fewest) break;
    }
    if (wrong >= fewest) continue;
    if (wrong == 0) {
      // What the sample did not show is a counterexample for all that follow.
      const std::vector<Output> others = sample(type, rules, device, false, kPerClass);
      if (others.empty()) return {rules, 0};
      outputs.insert(outputs.begin(), others.begin(), others.end());
      wrong = static_cast<std::int64_t>(others.size());
    }
    best = rules;
    fewest = wrong;
  }
  return {best, count_mismatches(type, best, device)};
}

std::vector<std::string> differences(const Rules& device, const Rules& model) {
  std::vector<std::string> list;
  for (const Parameter& p : kParameters)
    if (p.of(device) != p.of(model))
      list.push_back(p.before + p.show(p.of(device)) + p.after + ", the model " +
                     p.show(p.of(model)));
  return list;
}

}  // namespace numgate::tensor_core

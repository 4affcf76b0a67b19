#include "reports/study.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

namespace numgate {
namespace {

struct Distributions {
  std::map<std::string, std::vector<double>> values;
  std::map<std::string, int> failures;
  int cells = 0;
};

nlohmann::ordered_json summary(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  const auto at = [&](double q) {
    return v[static_cast<std::size_t>(q * static_cast<double>(v.size() - 1) + 0.5)];
  };
  return {{"count", v.size()},
          {"min", v.front()},
          {"median", at(0.5)},
          {"p99", at(0.99)},
          {"max", v.back()}};
}

}  // namespace

std::string study_json(const std::vector<Report>& reports) {
  std::map<std::string, Distributions> groups;
  for (const Report& report : reports)
    for (const CellResult& cell : report.cells) {
      if (cell.is_control || cell.tensors.empty()) continue;  // not run: nothing to learn
      Distributions& d = groups[cell.c.stage + "/" + cell.c.schedule.text() + "/" +
                                cell.c.plan.text() + "/" + cell.c.family];
      ++d.cells;
      for (const TensorResult& t : cell.tensors) {
        const std::string of = " of " + t.tensor;
        d.values["score" + of].push_back(t.score);
        d.values["score over its limit" + of].push_back(t.score /
                                                        std::max(2.0, 1.25 * t.score_null));
        if (t.token_score > 0) d.values["token score" + of].push_back(t.token_score);
        if (t.equivalence > 0) d.values["equivalence" + of].push_back(t.equivalence);
        if (t.growth) d.values["growth" + of].push_back(t.growth->value);
        d.values["relative error" + of].push_back(t.error.relative);
        d.values["projected error" + of].push_back(t.error.projected);
      }
      std::map<std::string, int> rules;
      for (const Reason& r : cell.reasons) rules[r.rule] = 1;
      for (const auto& [rule, one] : rules) d.failures[rule] += one;
    }
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const auto& [key, d] : groups) {
    nlohmann::ordered_json entry{{"cases", key}, {"cells", d.cells}, {"failures", d.failures}};
    for (const auto& [name, values] : d.values) entry[name] = summary(values);
    out.push_back(std::move(entry));
  }
  return out.dump(1);
}

}  // namespace numgate

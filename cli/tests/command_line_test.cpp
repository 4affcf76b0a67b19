// The command line as a user meets it: exit codes, one line for every mistake, resuming, export and
// judge.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/digests.h"
#include "cli/safetensors.h"
#include "reports/files.h"
#include "reports/report.h"

namespace numgate {
namespace {

namespace fs = std::filesystem;

struct Result {
  int code = -1;
  std::string out, err;
};

class CommandLine : public testing::Test {
 protected:
  CommandLine() : dir_(fs::temp_directory_path() / ("numgate_" + std::to_string(getpid()))) {
    fs::create_directories(dir_);
  }
  ~CommandLine() override { fs::remove_all(dir_); }

  Result numgate(const std::string& arguments) {
    const std::string out = path("stdout"), err = path("stderr");
    const int status = std::system(
        (std::string(NUMGATE_BINARY) + " " + arguments + " >" + out + " 2>" + err).c_str());
    return {WEXITSTATUS(status), read_file(out), read_file(err)};
  }
  std::string path(const std::string& name) const { return (dir_ / name).string(); }

  fs::path dir_;
};

constexpr const char* kSmall = "kda.prefill/cp3/production/gaussian/T=100/seed=1";
constexpr const char* kFault =
    "kda.prefill/cp8/reference:reference+merge.dot=tf32/needle/T=512/seed=1";

TEST_F(CommandLine, EveryMistakeIsOneLineThatNamesIt) {
  write_file_atomically(path("cut.json"), R"({"schema_version": "1.0", "cel)");
  write_file_atomically(path("policy.json"),
                        R"({"thresholds": {"score": {"value": 9, "reason": "x"}}})");
  write_file_atomically(path("tensors"), "short");
  for (const auto& [arguments, word] : std::vector<std::pair<std::string, std::string>>{
           {"run 'kda.prefill/cp8/production/needle/T=0/seed=1' --out " + path("o"), "T '0'"},
           {"run 'kda.prefill/cp8/production/needle/T=1099511627776/seed=1' --out " + path("o"),
            "T '1099511627776'"},
           {"run 'kda.prefill/cp8/quick/needle/T=64/seed=1' --out " + path("o"), "plan 'quick'"},
           {"run 'kda.prefill/cp8/production/noodle/T=64/seed=1' --out " + path("o"), "noodle"},
           {"run 'kda.prefill/replay@65/production/gaussian/T=64/seed=1' --out " + path("o"),
            "replay@65"},
           {"run 'kda.prefill/cp8/production/exact_integers/T=64/seed=1' --out " + path("o"),
            "exact_integers"},
           {"run 'nothing/matches/this/*' --out " + path("o"), "nothing/matches/this/*"},
           {"run --profile quicker", "quicker"},
           {"run --backend tpu", "tpu"},
           {std::string("run '") + kSmall + "' --out /proc/numgate/out", "/proc/numgate/out"},
           {std::string("run '") + kSmall + "' --policy " + path("policy.json") + " --out " +
                path("o"),
            "score"},
           {std::string("run '") + kSmall + "' --seeds 0", "--seeds"},
           {std::string("export '") + kSmall + "' --out /proc/numgate/out", "/proc/numgate/out"},
           {std::string("judge '") + kSmall + "' --tensors " + path("tensors"), "too short"},
           {std::string("judge '") + kSmall + "' --tensors " + path("absent"), "absent"},
           {"replay 'kda.prefill/cp8'", "kda.prefill/cp8"},
           {"render " + path("cut.json"), "report"},
           {"render " + path("absent"), "absent"},
           {"oracle --backend cpu --family noodle", "noodle"},
           {"oracle --backend tpu", "tpu"},
           {"oracle --backend cpu --T 0", "T '0'"},
           {"frobnicate", "frobnicate"}}) {
    const Result r = numgate(arguments);
    EXPECT_EQ(r.code, 1) << arguments;
    EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << arguments << "\n" << r.err;
    EXPECT_NE(r.err.find(word), std::string::npos) << arguments << "\n" << r.err;
    EXPECT_FALSE(fs::exists(path("o/report.json"))) << arguments;
  }
}

TEST_F(CommandLine, ExitCodesFollowTheVerdict) {
  EXPECT_EQ(numgate(std::string("run --quiet '") + kSmall + "' --out " + path("a")).code, 0);
  EXPECT_EQ(numgate(std::string("run --quiet '") + kFault + "' --out " + path("b")).code, 2);
  EXPECT_EQ(numgate(std::string("run --quiet '") + kSmall + "' '" + kFault +
                    "' --timeout 1e-9 --out " + path("c"))
                .code,
            3);
  // Zero beta on a zero state leaves nothing to compare.
  EXPECT_EQ(numgate("run --quiet 'kda.core/sequential/reference/zero_beta/T=64/seed=1' --out " +
                    path("d"))
                .code,
            5);
  const Report report = parse_report(read_file(path("b/report.json")));
  ASSERT_EQ(report.cells.size(), 1u);
  EXPECT_EQ(report.verdict, Verdict::FAIL);
  ASSERT_FALSE(report.cells[0].reasons.empty());
  EXPECT_EQ(report.cells[0].reasons[0].sites, std::vector<std::string>{"merge.dot"});
}

TEST_F(CommandLine, AnInterruptedRunGoesOnToTheSameReport) {
  const std::string cases = std::string("run --quiet '") + kSmall + "' '" + kFault +
                            "' 'kda.beta/sequential/reference/gaussian/T=99/seed=1'";
  ASSERT_EQ(numgate(cases + " --out " + path("whole")).code, 2);
  // As an interruption leaves it: one cell done, the next one half written, no report.
  std::string text = read_file(path("whole/cells.jsonl"));
  const std::size_t header = text.find('\n'), first = text.find('\n', header + 1);
  fs::create_directories(path("part"));
  write_file_atomically(path("part/cells.jsonl"),
                        text.substr(0, first + 1 + (text.size() - first) / 3));
  ASSERT_EQ(numgate(cases + " --resume --out " + path("part")).code, 2);

  const auto without_times = [](const std::string& file) {
    auto json = nlohmann::json::parse(read_file(file));
    for (const char* key : {"seconds", "timing", "started", "command"}) json.erase(key);
    for (auto& cell : json["cells"]) cell.erase("seconds"), cell.erase("timing");
    return json;
  };
  EXPECT_EQ(without_times(path("whole/report.json")), without_times(path("part/report.json")));

  write_file_atomically(path("part/cells.jsonl"), "another campaign\n" + text.substr(header + 1));
  const Result other = numgate(cases + " --resume --out " + path("part"));
  EXPECT_EQ(other.code, 1);
  EXPECT_NE(other.err.find("--resume"), std::string::npos) << other.err;
}

TEST_F(CommandLine, JudgeMirrorsExport) {
  const std::string id = "kda.prefill/sequential/production/gaussian/T=192,H=2/seed=1",
                    file = path("x/tensors.safetensors");
  ASSERT_EQ(numgate("export --quiet '" + id + "' --out " + path("x")).code, 0);
  const std::string judge = "judge --quiet '" + id + "' --tensors ";
  EXPECT_EQ(numgate(judge + file).code, 0);

  TensorMap tensors = read_safetensors(file);
  for (const char* name : {"q", "k", "v", "g_raw", "A_log", "dt_bias", "beta_raw", "state0", "o",
                           "state", "truth.o.hi", "truth.o.lo", "truth.state.hi", "truth.state.lo",
                           "truth.o.radius", "shadow.o.rms"})
    EXPECT_TRUE(tensors.contains(name)) << name;

  // Seen only after the cast to bf16.
  TensorMap cast = tensors;
  Tensor narrow(Dtype::bf16, tensors["o"].shape);
  for (std::int64_t i = 0; i < narrow.size(); ++i) {
    std::uint32_t word;
    std::memcpy(&word, tensors["o"].as<float>() + i, sizeof word);
    narrow.as<std::uint16_t>()[i] =
        static_cast<std::uint16_t>((word + 0x7fff + (word >> 16 & 1)) >> 16);
  }
  cast["o"] = narrow;
  write_safetensors(path("cast"), cast);
  EXPECT_EQ(numgate(judge + path("cast")).code, 0);

  // One destroyed element of one token.
  TensorMap wrong = tensors;
  wrong["o"].as<float>()[100 * 128 + 5] += 0.2f;
  write_safetensors(path("wrong"), wrong);
  const Result r = numgate(judge + path("wrong"));
  EXPECT_EQ(r.code, 2);
  EXPECT_NE(r.out.find("token 100"), std::string::npos) << r.out;

  // Outputs of other inputs are nobody's business here.
  TensorMap other = tensors;
  other["v"].as<std::uint16_t>()[0] ^= 1;
  write_safetensors(path("other"), other);
  EXPECT_EQ(numgate(judge + path("other")).code, 1);
}

// Slabs of generated inputs are those of the whole: a period as long as the layer changes nothing.
TEST_F(CommandLine, OracleAuditsALayerAndRecordsIt) {
  const auto record = [&](const std::string& arguments) {
    const Result r = numgate("oracle --backend cpu --family gaussian --T 80 --heads 5 --out " +
                             path("oracle.json") + arguments);
    EXPECT_EQ(r.code, 0) << r.err;
    return nlohmann::json::parse(read_file(path("oracle.json")));
  };
  const auto whole = record(""), at_once = record(" --period 80"), repeated = record(" --period 9");
  EXPECT_EQ(whole["period"], 0);
  EXPECT_EQ(repeated["period"], 32);
  EXPECT_EQ(whole["audit"], at_once["audit"]);
  for (const auto& r : {whole, at_once, repeated}) {
    EXPECT_EQ(r["audit"]["columns"], 4);
    EXPECT_GT(r["audit"]["operands"], 1000);
    EXPECT_LT(r["audit"]["worst_log2"], -90);
    const double seconds = r["seconds"]["truth"], rate = r["multiply_adds_per_second"];
    EXPECT_GT(seconds, 0);
    EXPECT_NEAR(rate * seconds, 4.0 * 80 * 5 * 128 * 128, 1);
  }
}

TEST_F(CommandLine, ExplainNamesSitesRankAndToken) {
  const Result r = numgate(std::string("explain --quiet '") + kFault + "'");
  EXPECT_EQ(r.code, 0);
  for (const char* word :
       {"merge.dot", "tf32", "first beyond budget", "rank", "token", "chunk", "share of each site"})
    EXPECT_NE(r.out.find(word), std::string::npos) << word << "\n" << r.out;
}

// The kernels' bits on an H200, recorded there.
TEST(Digests, TheCpuBackendGivesTheBitsOfTheGpu) {
  const Digests recorded = read_digests(NUMGATE_SOURCE_DIR "/reports/records/h200/digests.json");
  const auto backend = kernels::make_cpu_backend();
  const auto cases = digest_cases();
  EXPECT_GE(cases.size(), 300u);
  EXPECT_EQ(cases.size(), recorded.size());
  for (const Case& c : cases) {
    const auto found = recorded.find(c.id());
    ASSERT_NE(found, recorded.end())
        << c.id() << " is not recorded; refresh with numgate digests --backend cuda";
    EXPECT_EQ(digest(c, *backend), found->second) << c.id();
  }
}

}  // namespace
}  // namespace numgate

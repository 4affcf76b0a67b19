#include "cli/checkpoint.h"

#include "core/errors.h"
#include "reports/files.h"
#include "reports/report.h"

namespace numgate {

Checkpoint::Checkpoint(const std::filesystem::path& dir, const std::string& campaign, bool resume) {
  std::error_code error;
  std::filesystem::create_directories(dir, error);
  const auto path = dir / "cells.jsonl";
  std::string kept = campaign + "\n";
  if (resume && std::filesystem::exists(path)) {
    const std::string text = read_file(path);
    std::size_t begin = text.find('\n');
    if (text.substr(0, begin) != campaign)
      throw UsageError("--resume", path.string(), "holds the cells of another campaign");
    // A line without its end was cut off by the interruption.
    while (begin != std::string::npos && begin + 1 < text.size()) {
      const std::size_t end = text.find('\n', begin + 1);
      if (end == std::string::npos) break;
      const std::string line = text.substr(begin + 1, end - begin - 1);
      CellResult cell = parse_cell(line);
      kept += line + "\n";
      cells_.insert_or_assign(cell.c.id(), std::move(cell));
      begin = end;
    }
  }
  write_file_atomically(path, kept);
  file_.open(path, std::ios::app);
  if (!file_) throw UsageError("--out", dir.string(), "is not writable");
}

const CellResult* Checkpoint::find(const std::string& case_id) const {
  const auto found = cells_.find(case_id);
  return found == cells_.end() ? nullptr : &found->second;
}

void Checkpoint::add(const CellResult& cell) { file_ << to_json(cell) << '\n' << std::flush; }

}  // namespace numgate

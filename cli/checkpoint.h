// Finished cells on disk, so that an interrupted campaign can go on.
#pragma once
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "reports/result.h"

namespace numgate {

class Checkpoint {
 public:
  // `campaign` is a line that tells campaigns apart; with `resume` the cells of the same campaign
  // are kept, else the file starts anew. Raises UsageError: the directory is not writable; the file
  // belongs to another campaign.
  Checkpoint(const std::filesystem::path& dir, const std::string& campaign, bool resume);
  // The finished cell, or null.
  const CellResult* find(const std::string& case_id) const;
  void add(const CellResult& cell);

 private:
  std::map<std::string, CellResult> cells_;
  std::ofstream file_;
};

}  // namespace numgate

// The file that a long run goes on from: a cell a line, as JSON.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "tools/seeds/cell.h"

namespace berth::seeds {

class Results {
 public:
  enum class Access : uint8_t { kAdds, kReads };

  // Reads what is there. Who adds need not have a file yet, takes a last line that is cut short, since its writer was
  // killed, away (`mended` says so), and is alone with the file; who reads alone leaves such a line out, and may come
  // while another run adds. Throws Error for any other line that is no cell.
  explicit Results(std::string path, Access access = Access::kAdds);
  ~Results();
  Results(const Results&) = delete;
  Results& operator=(const Results&) = delete;

  const std::string& path() const { return path_; }
  const std::string& mended() const { return mended_; }  // one line; empty where nothing was
  // Null where there is none. Valid until the next Add.
  const Cell* Find(const Question& question) const;
  // Written to the file as a whole line before this returns.
  void Add(Cell cell);

 private:
  void Open();
  void Read(const std::string& text);
  void Keep(Cell cell);

  std::string path_, mended_;
  int file_ = -1;  // of who adds
  std::vector<Cell> cells_;
  std::unordered_map<std::string, size_t> by_key_;
};

}  // namespace berth::seeds

// Processes that work together, each with a copy of all that they know.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace berth {

// The processes, numbered from 0. All of them call Exchange equally often and in the same order, and the last call of
// each is End. For one thread.
class Ranks {
 public:
  virtual ~Ranks() = default;

  virtual int64_t size() const = 0;
  virtual int64_t rank() const = 0;
  // How many of them run on this machine, this one among them; and what the machine is called.
  virtual int64_t beside() const = 0;
  virtual std::string machine() const = 0;
  // The one that reads and writes files and prints.
  bool first() const { return rank() == 0; }

  // What each of them gives, by rank; waits for all. Throws Error where another one has made a mistake: with that, and
  // with who it was.
  std::vector<std::string> Exchange(std::string mine);
  // Whether it is so on one of them, at least.
  bool Any(bool mine);
  // What rank 0 has made; the others are not asked.
  std::string FromFirst(const std::function<std::string()>& make);

  // The end of what they do together: what went wrong here, or nothing. Waits for all; gives the first mistake of
  // another rank that is not known yet, or nothing.
  std::string End(const std::string& mistake);

 protected:
  // The bytes of all, by rank.
  virtual std::vector<std::string> Gather(const std::string& mine) = 0;

 private:
  std::vector<std::string> Tell(char kind, std::string text);

  bool ended_ = false;
};

// One process by itself.
class Alone : public Ranks {
 public:
  int64_t size() const override { return 1; }
  int64_t rank() const override { return 0; }
  int64_t beside() const override { return 1; }
  std::string machine() const override { return "this machine"; }

 protected:
  std::vector<std::string> Gather(const std::string& mine) override { return {mine}; }
};

}  // namespace berth

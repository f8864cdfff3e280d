// Ranks that are threads of one process, for tests.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/ranks.h"

namespace berth::testing {

class ThreadRank : public Ranks {
 public:
  // Where they meet.
  struct Place {
    explicit Place(int64_t ranks) : given(static_cast<size_t>(ranks)) {}

    std::mutex mutex{};
    std::condition_variable changed{};
    std::vector<std::string> given, last{};
    int64_t meeting = 0;
    size_t there = 0;
  };
  ThreadRank(Place& place, int64_t rank) : place_(place), rank_(rank) {}

  int64_t size() const override { return std::ssize(place_.given); }
  int64_t rank() const override { return rank_; }
  int64_t beside() const override { return size(); }
  std::string machine() const override { return "a thread"; }

 protected:
  std::vector<std::string> Gather(const std::string& mine) override {
    std::unique_lock lock(place_.mutex);
    place_.given[static_cast<size_t>(rank_)] = mine;
    if (++place_.there < place_.given.size()) {
      place_.changed.wait(lock, [&, now = place_.meeting] { return place_.meeting != now; });
      return place_.last;
    }
    place_.last = place_.given;
    place_.there = 0;
    ++place_.meeting;
    place_.changed.notify_all();
    return place_.last;
  }

 private:
  Place& place_;
  int64_t rank_;
};

// Runs `work` on so many ranks at once. By rank, the mistake that ended it: its own, or what it was told; empty
// without.
inline std::vector<std::string> RunRanks(int64_t count, const std::function<void(Ranks&)>& work) {
  ThreadRank::Place place(count);
  std::vector<std::string> mistakes(static_cast<size_t>(count));
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < count; ++rank) {
    threads.emplace_back([&, rank] {
      ThreadRank own(place, rank);
      std::string& mistake = mistakes[static_cast<size_t>(rank)];
      try {
        work(own);
      } catch (const Error& error) {
        mistake = error.what();
      }
      if (const std::string told = own.End(mistake); mistake.empty()) mistake = told;
    });
  }
  for (std::thread& thread : threads) thread.join();
  return mistakes;
}

}  // namespace berth::testing

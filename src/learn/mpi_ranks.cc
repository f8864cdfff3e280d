// The one file that knows MPI.
#include "learn/mpi_ranks.h"

#include <dlfcn.h>
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace berth {
namespace {

// MPI's own waiting turns a processor, which another rank may need: threads of that may still be at work.
void Wait(MPI_Request request) {
  constexpr std::chrono::microseconds kFirst(10), kLongest(500);
  auto pause = kFirst;
  for (int done = 0;;) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done != 0) return;
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLongest);
  }
}

// MPI's own errors, a dead rank among them, end all processes: that is its default.
class MpiRanks : public Ranks {
 public:
  MpiRanks() {
    int threads = 0, number = 0, length = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &threads);
    MPI_Comm_size(MPI_COMM_WORLD, &number);
    size_ = number;
    MPI_Comm_rank(MPI_COMM_WORLD, &number);
    rank_ = number;
    MPI_Comm here = MPI_COMM_NULL;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
    MPI_Comm_size(here, &number);
    beside_ = number;
    MPI_Comm_free(&here);
    char name[MPI_MAX_PROCESSOR_NAME] = "";
    MPI_Get_processor_name(name, &length);
    machine_.assign(name, static_cast<size_t>(length));
  }
  ~MpiRanks() override { MPI_Finalize(); }
  MpiRanks(const MpiRanks&) = delete;
  MpiRanks& operator=(const MpiRanks&) = delete;

  int64_t size() const override { return size_; }
  int64_t rank() const override { return rank_; }
  int64_t beside() const override { return beside_; }
  std::string machine() const override { return machine_; }

 protected:
  std::vector<std::string> Gather(const std::string& mine) override {
    const auto ranks = static_cast<size_t>(size_);
    std::vector<int64_t> bytes(ranks);
    const int64_t own = std::ssize(mine);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Iallgather(&own, 1, MPI_INT64_T, bytes.data(), 1, MPI_INT64_T, MPI_COMM_WORLD, &request);
    Wait(request);

    // MPI counts in int, so in pieces.
    const int64_t piece = (int64_t{1} << 30) / size_;
    std::vector<std::string> all(ranks);
    for (size_t r = 0; r < ranks; ++r) all[r].reserve(static_cast<size_t>(bytes[r]));
    std::vector<int> count(ranks), at(ranks);
    std::string received;
    for (int64_t from = 0; from < std::ranges::max(bytes); from += piece) {
      int sum = 0;
      for (size_t r = 0; r < ranks; ++r) {
        count[r] = static_cast<int>(std::clamp<int64_t>(bytes[r] - from, 0, piece));
        at[r] = sum;
        sum += count[r];
      }
      received.resize(static_cast<size_t>(sum));
      MPI_Iallgatherv(mine.data() + std::min(from, own), count[static_cast<size_t>(rank_)], MPI_BYTE, received.data(),
                      count.data(), at.data(), MPI_BYTE, MPI_COMM_WORLD, &request);
      Wait(request);
      for (size_t r = 0; r < ranks; ++r) {
        all[r].append(received, static_cast<size_t>(at[r]), static_cast<size_t>(count[r]));
      }
    }
    return all;
  }

 private:
  int64_t size_ = 0, rank_ = 0, beside_ = 0;
  std::string machine_;
};

}  // namespace

std::unique_ptr<Ranks> JoinRanks() {
  // OpenMPI's plugins look for its names among those of all, where this library has it for itself.
  ::dlopen("libmpi.so.40", RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
  return std::make_unique<MpiRanks>();
}

}  // namespace berth

// Whether mpirun or srun has started this process together with others, and how these work together.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/ranks.h"

namespace berth {

// How this process was started.
struct Launch {
  int64_t size = 1, rank = 0;
  std::string variable{};  // of the environment, which said so; empty: it was started by itself
};

// By OpenMPI's mpirun (OMPI_COMM_WORLD_SIZE), by a launcher that speaks PMI (PMI_SIZE), or by srun with PMIx.
Launch LaunchOf(const std::function<const char*(const char*)>& environment);
Launch ThisLaunch();

// Throws Error where several were started that cannot work together: only `train` divides its work (`trains`).
void CheckLaunch(const Launch& launch, bool trains);

// The ranks of this launch; one that is alone where it was started by itself. Throws Error where they cannot be joined.
std::unique_ptr<Ranks> JoinLaunch(const Launch& launch);

// Runs `work` on each rank and gives the exit code: that of rank 0, and 0 of all others. A mistake on one of them ends
// all: rank 0 throws it, and the others are silent, too, by their exit code: launchers kill what is left when one
// process ends with another one, and the line would be lost.
int Together(Ranks& ranks, const std::function<int()>& work);

}  // namespace berth

// Ranks over MPI, where Berth was built with it.
#pragma once

#include <memory>

#include "base/ranks.h"

namespace berth {

// Joins what mpirun or srun has started with this process. Once per process. When one of them dies, MPI ends them all.
std::unique_ptr<Ranks> JoinRanks();

}  // namespace berth

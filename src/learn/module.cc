#include "learn/module.h"

#if BERTH_HAS_MPI
#include "learn/mpi_ranks.h"
#endif

extern "C" const berth::LearnModule berth_learn_module;
const berth::LearnModule berth_learn_module = {
    .enter = berth::RegisterLearned,
    .train = berth::Train,
    .training_arguments = berth::TrainingArguments,
#if BERTH_HAS_MPI
    .join_ranks = berth::JoinRanks,
#else
    .join_ranks = nullptr,
#endif
};

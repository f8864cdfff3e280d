#include "learn/module.h"

extern "C" const berth::LearnModule berth_learn_module;
const berth::LearnModule berth_learn_module = {
    .enter = berth::RegisterLearned,
    .train = berth::Train,
    .training_arguments = berth::TrainingArguments,
};

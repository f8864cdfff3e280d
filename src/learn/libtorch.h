// What Berth uses of libtorch: tensors, gradients, linear layers and Adam. <torch/torch.h> has also what loads data,
// stores models and all other layers: it takes a sixth longer to precompile, and a source that includes it so
// precompiled a sixth longer, too.
#pragma once

#include <torch/autograd.h>
#include <torch/nn/init.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/types.h>

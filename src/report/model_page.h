// A model for people: what it consists of.
#pragma once

#include <string>

#include "graph/graph.h"

namespace berth {

std::string ModelPage(const Graph& graph);

}  // namespace berth

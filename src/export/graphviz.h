// Runs Graphviz.
#pragma once

#include <string>
#include <string_view>

namespace berth {

// Lays a graph in the DOT language out with the program `dot` and returns it as SVG. Throws Error when `dot` is not
// installed (saying how to mend that), or when it fails. `program` is there for tests.
std::string DotToSvg(std::string_view dot, const char* program = "dot");

}  // namespace berth

// The work of an op that has a body (a loop, a branch), from that of the body's ops: such an op is one op of the graph.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "graph/graph.h"

namespace berth {

// Adds up; throws Error that begins with `where` beyond 2^63.
void AddBytes(int64_t& total, int64_t bytes, std::string_view where);

// Of ops that run one after another. FLOPs and bytes are their sums; class and data type are those of the op with the
// most FLOPs. Steps are those of the ops that make more than a single number: such an op, as a loop's condition, stays
// on the processor. Throws Error that begins with `where` for more than 2^63 bytes.
OpWork WorkInTurn(std::span<const OpWork> ops, std::string_view where);

// Of `rounds` (at least 0) rounds of a loop. Throws as above.
OpWork Repeated(OpWork work, int64_t rounds, std::string_view where);

// Of two branches of which a run takes one: that which computes more. Its sizes are estimated where they differ.
OpWork LargerBranch(const OpWork& first, const OpWork& second);

}  // namespace berth

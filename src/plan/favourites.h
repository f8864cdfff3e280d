// Favourite children: which consumer of an op is to run next on its device, so that its tensor need not be sent in time
// (SCT: Hanen and Munier 1995; Baechi: Jeon et al. 2020, section 4.3).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/stop_check.h"
#include "placement/units.h"

namespace berth {

// From an op to one that consumes its tensors, where that may be on another device and is to be sent there.
struct FavouriteEdge {
  OpId from, to;
  double time;  // of the longest of these transfers, on average over pairs of devices; the problem's unit; above 0
};
// By from, then to. O(edges log edges).
std::vector<FavouriteEdge> FavouriteEdges(const Units& units);

struct Favourites {
  // By op: its favourite child, or OpId{-1}. No op is the favourite of two.
  std::vector<OpId> child;
  // What the linear program's schedule takes. Where devices are alike, transfers do not queue, and none takes longer
  // than any op (small communication times), no schedule on any number of devices takes less.
  std::optional<double> relaxed_makespan{};
};

// Whether this build has HiGHS, which solves the linear program.
inline constexpr bool kHasFavouriteProgram = BERTH_HAS_HIGHS;

// Of so many edges the program takes about a quarter of a minute, of twice as many a whole one.
inline constexpr size_t kMostProgramEdges = 50'000;

// Of the schedules in which each op has at most one favourite child, and is one of at most one op, and in which edges
// to favourites take no time, a shortest one, relaxed to a linear program: x in [0, 1] by edge, 0 for a favourite, by
// which the time of the edge is multiplied (Hanen and Munier 1995; Jeon et al. 2020, section 4.3). Ops take the mean of
// their times. Of its solutions one of those that send least in all, since the makespan says nothing of what is not on
// its longest paths. Rounded by RoundFavourites. Nothing where `stop`, asked now and then, has ended it, where it has
// lost its digits or a transfer takes 1e15 times as long as an op, nor where kHasFavouriteProgram says that there is no
// solver. A simplex of edges + ops columns and edges + 2 ops rows.
std::optional<Favourites> FavouritesByProgram(const Units& units, const StopCheck& stop);

// Without a program: the edges that take longest go first, each if neither its op has a favourite child nor its child
// is one yet. O(edges log edges).
Favourites HeaviestFavourites(const Units& units);

// Edges with x < 1/2, least first, each if it makes no second favourite; within the program's tolerance there is none.
// With this threshold, where small communication times hold, paths take at most (2 + 2 rho) / (2 + rho) times as long
// as in the program, rho being the longest transfer over the shortest op (Hanen and Munier 1995).
std::vector<OpId> RoundFavourites(size_t num_ops, std::span<const FavouriteEdge> edges, std::span<const double> x);

}  // namespace berth

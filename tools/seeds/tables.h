// What docs/seeds.md has of the cells: tables in the shape of the papers' own, and every cell.
#pragma once

#include <span>
#include <string>

#include "tools/seeds/measure.h"
#include "tools/seeds/results.h"
#include "tools/seeds/tasks.h"

namespace berth::seeds {

// In Markdown. Of what nobody has measured nothing is said: a row or a column without cells is left out.
std::string Tables(std::span<const Task> tasks, const Selection& selection, const Results& results);

}  // namespace berth::seeds

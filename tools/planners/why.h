// Why list scheduling and moves of single ops fail on steps of training: the figures of
// docs/decisions/0009-list-scheduling.md.
#pragma once

#include "cli/catalogs.h"

namespace berth {

void WriteWhy(const Catalogs& catalogs);

}  // namespace berth

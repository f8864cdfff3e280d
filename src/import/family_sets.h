// Sets of models that are alike, to learn on some and to be tried on others.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/catalog.h"

namespace berth {

// "family(name=enas_conv,split=train)" -> the names of its models, as ReadInstance takes them.
using FamilyCatalog = Catalog<std::vector<std::string>()>;
void RegisterFamilies(FamilyCatalog& catalog);

// A list of models separated by commas, with families in it replaced by their models. Throws Error where it is empty or
// names a model twice.
std::vector<std::string> ExpandModels(std::string_view list, const FamilyCatalog& families);

}  // namespace berth

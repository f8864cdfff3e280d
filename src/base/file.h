// Files in and out, with errors that name the file.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace berth {

// The whole file; Error when it cannot be read.
std::string ReadFile(const std::string& path);

// Written beside and renamed, so that nobody ever sees half a file. Error when that fails; nothing is left behind then.
void WriteFile(const std::string& path, std::string_view content);

// Removes what WriteFile left beside `path` where its process was killed. Not while another writes it.
void RemoveLeftovers(const std::string& path);

// Parses JSON; an Error names `path`, line, column and what was expected.
nlohmann::json ParseJson(std::string_view text, const std::string& path);
nlohmann::json ReadJson(const std::string& path);

}  // namespace berth

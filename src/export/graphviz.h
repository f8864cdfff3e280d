// Runs Graphviz.
#pragma once

#include <atomic>
#include <string>
#include <string_view>

namespace berth {

enum class PictureFormat : uint8_t { kSvg, kPng, kPdf };

// By the end of a file's name: .svg, .png or .pdf. Throws Error for another.
PictureFormat PictureFormatOf(std::string_view path);

struct GraphvizLimits {
  double seconds = 20;
  const std::atomic<bool>* cancelled = nullptr;  // drawing ends when it becomes true
};

// Lays a graph in the DOT language out with the program `dot` and returns the picture. Throws Error when `dot` is not
// installed (saying how to mend that), when it fails, and when it is not done within the limits. `program` is there for
// tests.
std::string DrawDot(std::string_view dot, PictureFormat format, const GraphvizLimits& limits = {},
                    const char* program = "dot");

// Throws the same Error as DrawDot when `dot` is not installed: before a long search finds that out.
void CheckGraphviz(const char* program = "dot");

}  // namespace berth

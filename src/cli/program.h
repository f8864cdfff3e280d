// The program: reads its arguments, runs the command, turns mistakes into one line and exit code 2.
#pragma once

namespace berth {

int RunProgram(int argc, const char* const* argv);

}  // namespace berth

#include "cli/program.h"

int main(int argc, char** argv) { return berth::RunProgram(argc, argv); }

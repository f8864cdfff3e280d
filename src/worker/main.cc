#include "worker/worker.h"

int main() { return berth::RunWorker(); }

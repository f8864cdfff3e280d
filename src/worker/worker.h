// The program berth-openvino: runs models with OpenVINO for `berth`, which starts it, asks it and ends it.
#pragma once

namespace berth {

// Reads one question a line from standard input and answers with one line each (worker/session.h).
int RunWorker();

}  // namespace berth

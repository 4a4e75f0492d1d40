// Included by c10d, which needs no name of it. Failures of Gloo arrive as gloo::IoException, which
// derives from std::exception: catch that, and read what().
#pragma once

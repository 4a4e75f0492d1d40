// Included by c10d, which needs no name of it.
#pragma once

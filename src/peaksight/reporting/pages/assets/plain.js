// A page that draws nothing.

startPage(() => undefined);

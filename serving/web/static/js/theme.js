// The colours that were chosen here before, set before anything is drawn. A browser may not let a page remember.
try {
  const theme = localStorage.getItem('theme');
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
} catch { /* then they are the system's */ }

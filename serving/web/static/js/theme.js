// Sets the saved color scheme before the page is drawn. The browser may block the storage.
try {
  const theme = localStorage.getItem('theme');
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
} catch { /* the system's scheme applies */ }

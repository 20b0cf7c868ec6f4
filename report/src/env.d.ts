declare module 'virtual:palette.css';
declare module '*.css';
